"""The whole cluster in one process and one thread, on time that does not pass by itself.

loop       an asyncio event loop with virtual time, on which processes can be frozen and killed
clocks     the database's clock, and each process's own wrong one
link       a process's way to the database: slow, cut, or loses answers
receiver   what is called; it writes down every call before it answers
process    one node: started, frozen, thawed, stopped, killed
workload   what users do
nemesis    what happens to them
world      all of it together; `run` plays one seed
"""
