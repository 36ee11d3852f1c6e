import { computed, effect, signal } from '@preact/signals';
import type { AgentView } from '../../../src/projection/model.ts';
import type { PromptTokens } from '../../../src/events/index.ts';
import { api } from './api.ts';
import { originalOf } from './copied.ts';
import { agentsByNeed, selectedAgent } from './selection.ts';

/** Window usage at a turn's last model call, by turn; null when unknown. Fetched once, one at a time. */
const known = signal<ReadonlyMap<string, PromptTokens | null>>(new Map());

/** The server renders a prompt again to compute the usage, so only this many agents are asked for in advance. */
const MAX_AGENTS = 12;
const MAX_KNOWN = 300;
const PAUSE_MS = 150;

export function usageOf({ lastTurn, turn }: AgentView): PromptTokens | null {
  return known.value.get(lastTurn ?? turn ?? '') ?? null;
}

/** The usage of the selected agent, else of the agent with the fullest window. */
export const usageShown = computed<{ agent: AgentView; tokens: PromptTokens } | null>(() => {
  const chosen = selectedAgent.value;
  const all = [...(chosen ? [chosen] : []), ...agentsByNeed.value].slice(0, MAX_AGENTS);
  const used = all.flatMap((agent) => {
    const tokens = usageOf(agent);
    return tokens ? [{ agent, tokens }] : [];
  });
  if (chosen && used[0]?.agent.id === chosen.id) return used[0];
  return used.toSorted((a, b) => b.tokens.percent - a.tokens.percent)[0] ?? null;
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
    // Prompts of the original are not kept in the fork.
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
