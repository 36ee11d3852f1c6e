import { computed } from '@preact/signals';
import type { AgentView, TurnView } from '../../../src/library/projection/model.ts';
import { needOrder } from '../../../src/library/projection/needs.ts';
import { definedAgents } from './defined-agents.ts';
import { live, shown } from './live.ts';
import { foundTurn, olderTurns } from './older-turns.ts';
import { go, route } from './route.ts';

/** Agents that need attention come first. */
export const agentsByNeed = computed<readonly AgentView[]>(() => needOrder(Object.values(agentsById.value)));
/** The same object until an agent changes, so that dependents are not recomputed with every event. */
const agentsById = computed(() => shown.value?.agents ?? NOBODY);
const NOBODY: Record<string, AgentView> = {};

/** As text, so that what shows names is not drawn again whenever an agent changes. */
const namesAsText = computed(() =>
  JSON.stringify(Object.values(agentsById.value).map(({ id, name }) => [id, name])),
);
const names = computed(() => new Map(JSON.parse(namesAsText.value) as [string, string][]));

/** Agents of other conversations are not in the projection, but in the definition. */
const definedNames = computed(() => new Map(definedAgents.value.map(({ id, name }) => [id as string, name])));

/** What people call an agent; its id if it has no name. */
export const nameOf = (agent: string): string =>
  names.value.get(agent) ?? definedNames.value.get(agent) ?? agent;

/** Those that the projection keeps, and before them what was read of older ones. */
export const turns = computed<readonly TurnView[]>(() => {
  const kept = shown.value?.turns ?? NO_TURNS;
  const older = olderTurns();
  return older.length === 0 ? kept : [...older.filter(({ from }) => from < (kept[0]?.from ?? 0)), ...kept];
});
const NO_TURNS: readonly TurnView[] = [];

/** A turn that is listed or was gone to; null for any other. */
export const turnOf = (id: string | null): TurnView | null =>
  id === null ? null : (turns.value.find((turn) => turn.id === id) ?? foundTurn(id));

/** Null if no turn is selected, or the selected one is not read yet. */
export const selectedTurn = computed(() => turnOf(route.value.turn));

/** The agent of the selected turn, else the one in the address, else the one that most needs attention. */
export const selectedAgent = computed<AgentView | null>(() => {
  const id = route.value.turn === null ? route.value.agent : (selectedTurn.value?.agent ?? route.value.agent);
  return (id === null ? undefined : agentsById.value[id]) ?? agentsByNeed.value[0] ?? null;
});

/** The last seq of the present, whichever moment is shown. */
export const head = computed(() => live.value?.seq ?? 0);

export function selectAgent({ id, turn, lastTurn }: AgentView): void {
  go({ agent: id, turn: turn ?? lastTurn, event: null, step: null, vs: null });
}

export function selectTurn(turn: TurnView | undefined): void {
  if (turn) go({ turn: turn.id, agent: turn.agent, event: null, step: null, vs: null });
}

/** Shows an event in full beside the list. */
export function selectEvent(seq: number, turn: string | null): void {
  const { tab } = route.value;
  go({
    event: seq,
    tab: tab === 'events' ? tab : 'raw',
    ...(turn !== null && { turn, step: null, vs: null }),
  });
}

/**
 * Puts the selected agent into the address before a command. Without one the most urgent agent is shown, which the command may
 * change.
 */
export function keepSelection(): void {
  const { conversation: id, agent, turn } = route.peek();
  const shownAgent = selectedAgent.peek();
  if (id !== null && agent === null && turn === null && shownAgent)
    go({ agent: shownAgent.id }, { replace: true });
}
