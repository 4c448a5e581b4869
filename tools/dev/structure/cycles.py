"""Finds circles in a graph of names."""


def cycles(graph):
    """The strongly connected components of more than one node, each sorted (Tarjan). `graph`
    maps a node to the nodes it uses; a node that uses itself is no circle."""
    number, lowest, stack, on_stack, found = {}, {}, [], set(), []
    for root in sorted(graph):
        if root in number:
            continue
        work = [(root, iter(sorted(graph[root])))]
        number[root] = lowest[root] = len(number)
        stack.append(root)
        on_stack.add(root)
        while work:
            node, targets = work[-1]
            target = next(targets, None)
            if target is None:
                work.pop()
                if work:
                    lowest[work[-1][0]] = min(lowest[work[-1][0]], lowest[node])
                if lowest[node] == number[node]:
                    component = []
                    while not component or component[-1] != node:
                        component.append(stack.pop())
                        on_stack.discard(component[-1])
                    if len(component) > 1:
                        found.append(sorted(component))
            elif target not in number:
                number[target] = lowest[target] = len(number)
                stack.append(target)
                on_stack.add(target)
                work.append((target, iter(sorted(graph.get(target, ())))))
            elif target in on_stack:
                lowest[node] = min(lowest[node], number[target])
    return sorted(found)


def shortest_circle(graph, component):
    """A shortest circle within a component, its first node repeated at the end."""
    best = None
    inside = set(component)
    for start in component:
        parent = {start: None}
        queue = [start]
        while queue and start is not None:
            node = queue.pop(0)
            if start in graph[node] and node != start:
                path = [start]
                while node is not None:
                    path.append(node)
                    node = parent[node]
                path.reverse()
                if best is None or len(path) < len(best):
                    best = path
                break
            for target in sorted(graph[node]):
                if target in inside and target not in parent:
                    parent[target] = node
                    queue.append(target)
    return best
