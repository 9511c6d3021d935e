"""What makes an instance hard, in numbers and words."""
