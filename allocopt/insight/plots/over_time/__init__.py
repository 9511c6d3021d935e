"""What happens as rounds go by: regret, pulls, and what no policy can beat at n."""
