"""What the phone shows: apps described as data, their state, the layout, the hierarchy dump and the picture."""
