import type { AgentId, Event } from '../../events/index.ts';
import { escapeMarks, fence } from '../fence.ts';
import { fenceKey } from '../hash.ts';
import type { People } from '../people.ts';
import { type FittedRequest, fitRequest, leftOut, levelOptions, type RequestDraft } from './fit-request.ts';
import { handoffInstructions } from './instructions.ts';
import { transcriptBlocks } from './render-transcript.ts';
import { peopleOf } from './speakers.ts';

export interface HandoffInput {
  from: AgentId;
  to: AgentId;
  /** The end of the conversation and what the agent has done since, oldest first. */
  events: readonly Event[];
  /** The summary of what came before it; '' if there is none. */
  before: string;
  secret: string;
  people?: People;
}

/** Asks for what the next agent must know, as JSON. Null where not even the shortest request fits. */
export function fitHandoffRequest(
  input: HandoffInput & { maxTokens: number; count: (text: string) => number },
): FittedRequest | null {
  return fitRequest((level) => draftAt(input, level), input);
}

function draftAt(input: HandoffInput, level: number): RequestDraft {
  const { from, to, events, before, secret } = input;
  const people = input.people ?? peopleOf(events);
  const key = fenceKey(secret, `hand over ${events.at(-1)?.seq ?? 0}`);
  const blocks = transcriptBlocks(events, { ...levelOptions(level), key, people });
  const earlier = before.trim() === '' ? [] : [fence('summary', key, escapeMarks(before))];
  const system = handoffInstructions(from, to);
  return {
    entries: blocks.length,
    show: (newest) => {
      const left = Math.max(0, blocks.length - newest);
      const user = [
        ...earlier.map((text) => `The summary of what came before:\n${text}`),
        ...leftOut(left),
        `The conversation, ending with what @${from} said last:\n${blocks.slice(left).join('\n')}`,
        'Now write the JSON object.',
      ];
      return { system, user: user.join('\n\n') };
    },
  };
}
