"""The versions of ACP, each as it is spoken to an editor."""
