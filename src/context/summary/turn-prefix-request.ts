import type { EventDraft, TurnId } from '../../events/index.ts';
import { escapeMarks, fence } from '../fence.ts';
import { fenceKey } from '../hash.ts';
import type { Steps } from '../steps.ts';
import { clip } from './clip.ts';
import {
  type Fit,
  fitSteps,
  type FittedRequest,
  leftOut,
  levelOptions,
  requestAt,
  type RequestDraft,
  type SummaryRequest,
} from './fit-request.ts';
import { turnInstructions } from './instructions.ts';
import { transcriptSteps } from './render-transcript.ts';

/** A turn that grows too long for its window is split: its early steps are summarised while it runs. */
export interface TurnPrefixInput {
  turn: TurnId;
  /** The words that the turn answers. */
  trigger: string;
  /** The summary of the steps before `outputs`, from an earlier split of the same turn. */
  previous: string | null;
  /** Whole call groups: steps and their results. */
  outputs: readonly EventDraft[];
  budgetTokens: number;
  secret: string;
}

export function turnPrefixRequest(input: TurnPrefixInput & { level: number }): SummaryRequest {
  return requestAt(input.level, (level, mostChars) => draftAt(input, level, mostChars));
}

export function turnPrefixSteps(input: TurnPrefixInput & Fit): Steps<FittedRequest | null> {
  return fitSteps((level, mostChars) => draftAt(input, level, mostChars), input);
}

function* draftAt(input: TurnPrefixInput, level: number, mostChars: number): Steps<RequestDraft> {
  const { turn, trigger, previous, outputs, budgetTokens, secret } = input;
  const key = fenceKey(secret, `summarise ${turn}`);
  const options = levelOptions(level);
  const { blocks, entries } = yield* transcriptSteps(outputs, { ...options, key }, mostChars);
  const task = fence('transcript', key, escapeMarks(clip(trigger, options.messageChars)));
  const earlier = previous === null ? [] : [fence('summary', key, escapeMarks(previous))];
  const system = turnInstructions(budgetTokens);
  return {
    entries,
    written: blocks.length,
    show: (newest) => {
      const left = Math.max(0, entries - newest);
      const shown = blocks.slice(Math.max(0, blocks.length - newest));
      const user = [
        `The task, as it was given:\n${task}`,
        ...earlier.map((text) => `The summary of the earlier steps, to be updated:\n${text}`),
        ...leftOut(left),
        `The steps since:\n${shown.join('\n')}`,
        'Now write the summary.',
      ];
      return { system, user: user.join('\n\n') };
    },
  };
}
