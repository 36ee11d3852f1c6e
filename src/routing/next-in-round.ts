/** The agent after the one that was asked last, and the first where none was; the place in the round is in the log. */
export function nextInRound<Id extends string>(
  agents: readonly Id[],
  askedAt: (agent: Id) => number | undefined,
): Id[] {
  let last = -1;
  let lastAt = 0;
  for (const [index, agent] of agents.entries()) {
    const at = askedAt(agent) ?? 0;
    if (at > lastAt) [last, lastAt] = [index, at];
  }
  const next = agents[(last + 1) % agents.length];
  return next === undefined ? [] : [next];
}
