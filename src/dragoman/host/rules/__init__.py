"""What is allowed: accesses, rules, the policy they form, and names that always ask."""
