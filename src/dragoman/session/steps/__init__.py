"""Steps of the fold for one part of the state each; `reduce` has the rest, and the table of all."""
