"""What makes an instance hard: reports, studies, families of instances, plots."""
