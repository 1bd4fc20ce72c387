"""Ways to reach an agent: each moves bytes and knows nothing of what they mean."""
