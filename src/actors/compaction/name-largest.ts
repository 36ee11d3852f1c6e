import { budgetOf, type Slot } from '../../context/index.ts';
import { hasStalled, STALLED_AFTER } from '../../context/compaction/strategies.ts';
import type { PromptRecord } from '../../events/index.ts';
import type { TurnRun } from '../turn/turn-run.ts';
import { windowFor } from './policy-for.ts';

/** Why a prompt cannot be made to fit: the room, the layers, and the single messages that are the most of it. */
export function nameLargest(run: TurnRun, { tokens, layers }: PromptRecord): string {
  const { live, runtime, model } = run;
  // The prompt may have been built before its refusal named the window.
  const { maxOutputTokens } = runtime.profile;
  const { window, reserved, available } = budgetOf({ window: windowFor(runtime, model), maxOutputTokens });
  const parts = layers.toSorted((a, b) => b.tokens - a.tokens).slice(0, 3);
  const largest = live.view.slots.toSorted((a, b) => b.tokens - a.tokens).slice(0, 2);
  return [
    `the prompt has about ${tokens.estimate} tokens; a window of ${window} less ${reserved} reserved for the answer leaves ${available}`,
    `largest layers: ${parts.map(({ name, tokens: size }) => `${name} ${size}`).join(', ')}`,
    `largest messages: ${largest.map(nameOf).join(', ')}`,
    brokenCircuit(run),
    'what is to be answered, the newest results and the instructions are never cut',
  ]
    .filter((part) => part !== null)
    .join('. ');
}

/** Why no further compaction is made; null if one may be. */
export function brokenCircuit({ live, policy }: TurnRun): string | null {
  if (!hasStalled(live.view, policy)) return null;
  return `the last ${STALLED_AFTER} compactions brought the prompt hardly under its limit, so no further one is made`;
}

function nameOf({ message, tokens, layer }: Slot): string {
  const [first] = message.seqs;
  const which = first === undefined ? layer : `event ${first}`;
  return `${which} (${message.role}) ${tokens}`;
}
