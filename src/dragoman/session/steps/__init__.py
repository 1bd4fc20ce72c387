"""Steps of the fold for one thing each: `reduce` says which event leads to which."""
