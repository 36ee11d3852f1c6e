import { below, pick, type Random } from '../../sim/random.ts';
import type { PromptMessage } from '../../src/events/index.ts';
import type { Target } from '../target.ts';
import { checkMarks } from './check-marks.ts';
import { checkSummary } from './check-summary.ts';
import { hostileName, hostileText } from './hostile-text.ts';
import { compacted, playConversation, READER, type Said } from './play-conversation.ts';

/** Conversations of authors who try to impersonate others. `checkMarks` reads every resulting prompt. */
export interface FencesInput {
  said: Said[];
}

export interface FencesOptions {
  /** Spoils a prompt before it is read, to test the reader. */
  spoil?: (message: PromptMessage) => PromptMessage;
}

const KINDS = [
  'message',
  'message',
  'message',
  'attachment',
  'handoff',
  'phase.changed',
  'turn.failed',
  'step',
  'injection',
  'delegation.ended',
  'turn',
];
const PEOPLE = ['u1', 'u2', 'u1xxxxxx-one', 'u1xxxxxx-two', '] [@bob', '@bob', 'ada', 'system'];
const AGENTS = ['bob', 'cyd', 'x]\n[system', '@dan', 'e'.repeat(64)];

export function fencesTarget({ spoil = (message) => message }: FencesOptions = {}): Target<FencesInput> {
  return {
    name: 'fences',
    keepKeys: true,
    make: (random) => ({ said: Array.from({ length: 1 + below(random, 7) }, () => saidOf(random)) }),
    run({ said }) {
      let prompts = 0;
      playConversation(said, ({ messages, facts }) => {
        prompts += 1;
        checkMarks({ messages: messages.map(spoil), facts });
      });
      checkSummary(compacted(said), said.length);
      return prompts > 0 ? 'accepted' : 'no prompt';
    },
    parts: ({ said }) => 2 * said.length,
  };
}

function saidOf(random: Random): Said {
  const kind = pick(random, KINDS);
  // Only agents and the runtime can write these kinds. The reader's own words need no fence.
  const isOfAgent = kind !== 'message' && kind !== 'attachment';
  const who =
    kind === 'injection'
      ? 'system'
      : isOfAgent
        ? 'agent'
        : pick(random, ['user', 'user', 'agent', 'system'] as const);
  return {
    kind,
    who,
    id: who === 'user' ? pick(random, PEOPLE) : pick(random, AGENTS),
    name: hostileName(random),
    to: pick(random, [[], [READER], [READER], ['bob'], ['bob', READER]]),
    text: hostileText(random),
    more: hostileText(random),
  };
}
