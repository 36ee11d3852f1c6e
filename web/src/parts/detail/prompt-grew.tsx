import type { Event } from '../../../../src/events/index.ts';
import type { InspectedPrompt, PromptDiff } from '../../../../src/library/troupe.ts';
import { plural, short, whole } from '../../shared/format.ts';
import { api } from '../../state/api.ts';
import { useFetched } from '../../state/fetched.ts';
import { turnLabel } from './chosen.ts';
import { EventLink } from './event-link.tsx';
import { growthOf, type Growth } from './prompt-growth.ts';
import { scaleOf } from './prompt-layout.ts';
import '../../style/detail-grew.css';

interface PromptGrewProps {
  prompt: InspectedPrompt;
  diff: PromptDiff | null;
  before: string | null;
  isAsked: boolean;
}

const MOST = 5;

/** One line that names the event that made this prompt larger or smaller than the previous one. */
export function PromptGrew({ prompt, diff, before, isAsked }: PromptGrewProps) {
  const growth = diff ? growthOf(diff, prompt) : [];
  const events = useEvents(prompt.conversation, growth.slice(0, MOST));
  if (before === null) return <p class="prompt-grew">The first prompt of this agent in this conversation.</p>;
  // Takes its final height at once, so that nothing below it moves.
  if (!diff) return <p class="prompt-grew">{isAsked ? '\u00A0' : 'Nothing to compare with.'}</p>;
  const rest = growth.length - MOST;
  return (
    <div class="prompt-grew">
      <strong>{signed(Math.round(diff.tokens.delta * scaleOf(prompt)))} tokens</strong> since{' '}
      {turnLabel(before)}, estimated{growth.length > 0 && ':'}
      <ol>
        {growth.slice(0, MOST).map((each, index) => (
          <li key={index}>
            <Cause growth={each} events={events} />
            <span class="prompt-grew-by">{signed(Math.round(each.tokens))}</span>
          </li>
        ))}
        {rest > 0 && (
          <li class="quiet">
            {plural(rest, 'smaller change')}
            <span class="prompt-grew-by">
              {signed(Math.round(growth.slice(MOST).reduce((sum, { tokens }) => sum + tokens, 0)))}
            </span>
          </li>
        )}
      </ol>
    </div>
  );
}

function Cause({
  growth: { seqs, layer, role, count, tokens },
  events,
}: {
  growth: Growth;
  events: readonly Event[];
}) {
  if (layer !== null) return <span class="prompt-grew-what">layer {layer}</span>;
  const [first] = seqs;
  const last = seqs.at(-1);
  if (first === undefined || last === undefined) {
    const messages = count === 1 ? `${role} message` : plural(count, `${role} message`);
    return <span class="prompt-grew-what">{tokens < 0 ? `${messages} taken out` : messages}</span>;
  }
  const event = events.find(({ seq }) => seq === first);
  return (
    <span class="prompt-grew-what">
      {seqs.length === 1 ? (
        <EventLink seq={first} label={`event ${first}`} />
      ) : (
        <>
          <EventLink seq={first} label={`events ${first}`} />–<EventLink seq={last} label={String(last)} />
        </>
      )}{' '}
      {seqs.length > 1 ? `${seqs.length} messages missed` : event ? wordsOf(event) : role}
    </span>
  );
}

function wordsOf(event: Event): string {
  if (event.kind === 'tool.result') return `tool.result ${event.body.name}`;
  if (event.kind === 'step') return `step ${event.body.calls.map(({ name }) => name).join(', ')}`;
  return `${event.kind} ${event.author.name}`;
}

/** Most events fetched. Changes mostly come from the newest events, so the range rarely exceeds this. */
const MOST_EVENTS = 500;

function useEvents(conversation: string, growth: readonly Growth[]): readonly Event[] {
  const seqs = growth.flatMap((each) => each.seqs.slice(0, 1));
  const first = Math.min(...seqs);
  const count = Math.min(MOST_EVENTS, Math.max(...seqs) - first + 1);
  const found = useFetched(seqs.length === 0 ? null : `events ${first} ${count}`, null, () =>
    api.events(conversation, { after: first - 1, limit: count }),
  );
  return found.state === 'there' ? found.value.events : [];
}

export function signed(count: number): string {
  return count < 0 ? `−${sized(-count)}` : `+${sized(count)}`;
}

function sized(count: number): string {
  return count < 100_000 ? whole(count) : short(count);
}
