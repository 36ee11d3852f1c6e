import type { EventDraft, TurnId } from '../../events/index.ts';
import { escapeMarks, fence } from '../fence.ts';
import { fenceKey } from '../hash.ts';
import { clip } from './clip.ts';
import {
  type FittedRequest,
  fitRequest,
  leftOut,
  levelOptions,
  requestAt,
  type RequestDraft,
  type SummaryRequest,
} from './fit-request.ts';
import { turnInstructions } from './instructions.ts';
import { transcriptBlocks } from './render-transcript.ts';

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
  return requestAt(input.level, draftAt(input, input.level));
}

export function fitTurnPrefixRequest(
  input: TurnPrefixInput & { maxTokens: number; count: (text: string) => number },
): FittedRequest | null {
  return fitRequest((level) => draftAt(input, level), input);
}

function draftAt(input: TurnPrefixInput, level: number): RequestDraft {
  const { turn, trigger, previous, outputs, budgetTokens, secret } = input;
  const key = fenceKey(secret, `summarise ${turn}`);
  const options = levelOptions(level);
  const blocks = transcriptBlocks(outputs, { ...options, key });
  const task = fence('transcript', key, escapeMarks(clip(trigger, options.messageChars)));
  const earlier = previous === null ? [] : [fence('summary', key, escapeMarks(previous))];
  const system = turnInstructions(budgetTokens);
  return {
    entries: blocks.length,
    show: (newest) => {
      const left = Math.max(0, blocks.length - newest);
      const user = [
        `The task, as it was given:\n${task}`,
        ...earlier.map((text) => `The summary of the earlier steps, to be updated:\n${text}`),
        ...leftOut(left),
        `The steps since:\n${blocks.slice(left).join('\n')}`,
        'Now write the summary.',
      ];
      return { system, user: user.join('\n\n') };
    },
  };
}
