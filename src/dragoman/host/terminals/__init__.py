"""Commands an agent has us run."""
