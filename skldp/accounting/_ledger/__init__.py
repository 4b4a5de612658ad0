"""The durable record of what every person has answered."""
