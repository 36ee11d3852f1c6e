import type { AgentId, Event } from '../../events/index.ts';
import { escapeMarks, fence } from '../fence.ts';
import { fenceKey } from '../hash.ts';
import type { People } from '../people.ts';
import type { Steps } from '../steps.ts';
import type { Trusted } from '../trusted.ts';
import {
  type Fit,
  fitSteps,
  type FittedRequest,
  leftOut,
  levelOptions,
  type RequestDraft,
} from './fit-request.ts';
import { handoffInstructions } from './instructions.ts';
import { transcriptSteps } from './render-transcript.ts';
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
  trusted?: Trusted;
}

/** Asks for what the next agent must know, as JSON. Null where not even the shortest request fits. */
export function handoffRequestSteps(input: HandoffInput & Fit): Steps<FittedRequest | null> {
  return fitSteps((level, mostChars) => draftAt(input, level, mostChars), input);
}

function* draftAt(input: HandoffInput, level: number, mostChars: number): Steps<RequestDraft> {
  const { from, to, events, before, secret, trusted = null } = input;
  const people = input.people ?? peopleOf(events);
  const key = fenceKey(secret, `hand over ${events.at(-1)?.seq ?? 0}`);
  const options = { ...levelOptions(level), key, people, trusted };
  const { blocks, entries } = yield* transcriptSteps(events, options, mostChars);
  const earlier = before.trim() === '' ? [] : [fence('summary', key, escapeMarks(before))];
  const system = handoffInstructions(from, to);
  return {
    entries,
    written: blocks.length,
    show: (newest) => {
      const left = Math.max(0, entries - newest);
      const shown = blocks.slice(Math.max(0, blocks.length - newest));
      const user = [
        ...earlier.map((text) => `The summary of what came before:\n${text}`),
        ...leftOut(left),
        `The conversation, ending with what @${from} said last:\n${shown.join('\n')}`,
        'Now write the JSON object.',
      ];
      return { system, user: user.join('\n\n') };
    },
  };
}
