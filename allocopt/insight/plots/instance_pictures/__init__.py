"""Pictures of an instance: its arms and parameters in the plane or in space, gaps against information, graphs."""
