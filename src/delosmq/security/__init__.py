"""Users, roles and permissions: who may log in and what they may do. Pure: no files, no clock, no chance."""
