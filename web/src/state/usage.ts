import { computed, effect, signal } from '@preact/signals';
import type { AgentView } from '../../../src/projection/model.ts';
import type { PromptTokens } from '../../../src/events/index.ts';
import { api } from './api.ts';
import { originalOf } from './copied.ts';
import { agentsByNeed, selectedAgent } from './selection.ts';

/** How full windows were at a turn's last model call, by turn; null where nobody knows. Asked for once, one at a time. */
const known = signal<ReadonlyMap<string, PromptTokens | null>>(new Map());

/** A server renders a prompt again to tell of it: only for those who are looked at first. */
const MAX_AGENTS = 12;
const MAX_KNOWN = 300;
const PAUSE_MS = 150;

export function usageOf({ lastTurn, turn }: AgentView): PromptTokens | null {
  return known.value.get(lastTurn ?? turn ?? '') ?? null;
}

/** Of the agent that is looked at, else of the one whose window is fullest. */
export const usageShown = computed<{ agent: AgentView; tokens: PromptTokens } | null>(() => {
  const chosen = selectedAgent.value;
  const all = [...(chosen ? [chosen] : []), ...agentsByNeed.value].slice(0, MAX_AGENTS);
  const told = all.flatMap((agent) => {
    const tokens = usageOf(agent);
    return tokens ? [{ agent, tokens }] : [];
  });
  if (chosen && told[0]?.agent.id === chosen.id) return told[0];
  return told.toSorted((a, b) => b.tokens.percent - a.tokens.percent)[0] ?? null;
});

const wanted = computed(() => {
  const agents = [selectedAgent.value, ...agentsByNeed.value.slice(0, MAX_AGENTS)];
  return agents.map((agent) => agent?.lastTurn ?? agent?.turn).find((turn) => turn && !known.value.has(turn));
});

let busy = false;
effect(() => {
  if (wanted.value) void askNext();
});

async function askNext(): Promise<void> {
  if (busy) return;
  busy = true;
  for (let turn = wanted.peek(); turn; turn = wanted.peek()) {
    // What was sent in the original is not kept here.
    const tokens = originalOf(turn)
      ? null
      : await api.prompt(turn).then(
          (prompt) => prompt.tokens,
          () => null,
        );
    known.value = new Map([...[...known.value].slice(-MAX_KNOWN), [turn, tokens]]);
    await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
  }
  busy = false;
}
