"""The doctor: a selection of the checks that costs an agent little, for the people who use it."""
