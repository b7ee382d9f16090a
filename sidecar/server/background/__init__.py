"""What runs behind the answers: nothing here delays a request."""
