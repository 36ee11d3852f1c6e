import type { ConversationId } from '../../../../src/events/index.ts';
import type { Transitions } from '../../../../src/library/projection/chart.ts';
import { route } from '../../state/route.ts';
import { chosen } from './chosen.ts';
import { commandsOf } from './commands.ts';
import { OfferButton } from './offer-button.tsx';
import { legalAt, type Moment } from './moment.ts';

/** What the events of the machine mean. */
const EVENT_WORDS: Record<string, string> = {
  PINNED: 'a turn begins',
  PROMPT_READY: 'the prompt is made',
  OVER_BUDGET: 'the prompt is too long',
  OVERFLOWED: 'the model refuses the length',
  COMPACTED: 'there is room again',
  MODEL_CALLED: 'the model calls tools',
  MODEL_REPLIED: 'the model has answered',
  MODEL_FAILED: 'the call fails',
  RETRY_DUE: 'the pause is over',
  CALLS_DONE: 'the tools have answered',
  CALLS_ENDED_TURN: 'a tool ends the turn',
  ACCEPTED: 'the answer is taken',
  CORRECTED: 'the answer is sent back',
  COMMITTED: 'the turn is stored',
  BREAK: 'it cannot go on',
  ABORTED: 'somebody aborts the turn',
  REFUSED: 'the turn is refused',
  PAUSE: 'somebody pauses it',
  RESUME: 'somebody resumes it',
  RETRY: 'somebody tries again',
  RETIRE: 'somebody retires it',
  REINSTATE: 'somebody reinstates it',
};
const GUARD_WORDS: Record<string, string> = {
  mayRetry: 'it may be tried again',
  waitsForApproval: 'it waits for an approval',
  waitsForAnswer: 'it waits for an answer',
  waitsForDelegation: 'it waits for a task',
};

/** What a command that is no event of the machine leads to. */
const TARGETS: Record<string, string> = { compact: 'a shorter next prompt', retry: 'working' };

/** What the machine accepts in this state. Commands of people are buttons; events of the runtime are text. */
export function StateLegal({ chart, moment }: { chart: Transitions | null; moment: Moment }) {
  const { actor, agentId, turn, turnId } = chosen.value;
  const { at, conversation } = route.value;
  const isLive = at === null;
  const legal = legalAt(chart, moment);
  const offers =
    isLive && agentId !== null && conversation !== null
      ? commandsOf({ actor, conversation: conversation as ConversationId, agent: agentId, turn: turnId })
          // A failed turn has this button in its own card.
          .filter(({ command }) => command.command !== 'retry' || turn?.status !== 'failed')
      : [];
  const byItself = legal.filter(({ event }) => offers.every((offer) => offer.event !== event));
  return (
    <section class="state-legal" aria-label="Possible next events">
      <h3>Possible next events</h3>
      <ul>
        {offers.map((offer) => {
          const { label, event } = offer;
          const target = legal.find((each) => each.event === event)?.target ?? TARGETS[offer.command.command];
          return (
            <li key={label}>
              <OfferButton offer={offer} label={label} class="button-code" />
              {target !== undefined && <span class="state-target">→ {target}</span>}
            </li>
          );
        })}
        {byItself.map(({ event, guard, target }) => (
          <li key={`${event} ${guard} ${target}`}>
            {EVENT_WORDS[event] === undefined ? (
              <code>{event}</code>
            ) : (
              <span title={event}>{EVENT_WORDS[event]}</span>
            )}
            <span class="state-target">
              → {target}
              {guard !== null && <> if {GUARD_WORDS[guard] ?? guard}</>}
            </span>
          </li>
        ))}
        {legal.length === 0 && offers.length === 0 && <li class="quiet">none: this state is final</li>}
      </ul>
    </section>
  );
}
