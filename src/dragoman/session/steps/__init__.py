"""Steps of the fold for one part of the state each; `reduce` has the others, and says which event
leads to which."""
