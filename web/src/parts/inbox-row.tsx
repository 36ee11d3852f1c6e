import type { TurnId } from '../../../src/events/index.ts';
import { CommandButton } from '../shared/command-button.tsx';
import { age, dollars, plural, short } from '../shared/format.ts';
import { Due } from '../shared/due.tsx';
import { Go } from '../shared/go.tsx';
import { STATE_WORDS, StateIcon } from '../shared/standing.tsx';
import type { InboxLine } from '../../../src/http/inbox.ts';
import { inbox, refreshInbox, stuckIn, stuckWords } from '../state/inbox.ts';
import { route } from '../state/route.ts';
import { nameOf } from '../state/selection.ts';
import { InboxDecide } from './inbox-decide.tsx';

/** A reader who sorts conversations by cost is led to the costliest turns. */
const BY_COST = { list: 'turns', sort: '-cost' } as const;

/** One conversation: its subject, its state and the reason, its participants, its usage, and since when. */
export function InboxRow({ line }: { line: InboxLine }) {
  const { id, state, since, at, agents, agentCount, people, tokens, head, asks, failure } = line;
  const [owner] = people;
  const others = agentCount - agents.length;
  return (
    <li>
      <Go
        class={`inbox-row inbox-${state}`}
        to={{ conversation: id, ...(route.value.order === 'costliest' && BY_COST) }}
        title={`${id}, ${plural(head, 'event')}`}
      >
        <span class="inbox-state" title={line.may?.decide === false ? 'Needs others' : STATE_WORDS[state]}>
          <StateIcon of={state} />
        </span>
        <span class="inbox-what">
          <About line={line} />
          <Why line={line} />
        </span>
        <span class="inbox-who clip">
          {agents.map((agent) => nameOf(agent.id)).join(', ')}
          {others > 0 && ` +${others}`}
        </span>
        <span class="inbox-owner clip">
          <bdi>{owner?.name}</bdi>
        </span>
        <span class="inbox-tokens" title={`${plural(tokens, 'token')} in ${plural(line.turns, 'turn')}`}>
          {inbox.value?.costs === 'dollars' && line.dollars !== null
            ? line.dollars > 0 && dollars(line.dollars)
            : tokens > 0 && short(tokens)}
        </span>
        <time
          class="inbox-age"
          dateTime={new Date(since).toISOString()}
          title={new Date(at).toLocaleString()}
        >
          {age(Date.now() - since)}
        </time>
      </Go>
      {asks?.decide && <InboxDecide key={asks.decide.request} line={line} />}
      {failure?.turn && (
        <div class="inbox-decide inbox-retry">
          <CommandButton
            command={{ command: 'retry', turn: failure.turn as TurnId }}
            label="Retry"
            shortcut="r"
            onAccepted={refreshInbox}
          />
        </div>
      )}
    </li>
  );
}

/** The first text and the id; for a thread also where its task was given. */
function About({ line: { id, about, parent } }: { line: InboxLine }) {
  return (
    <span class="inbox-about">
      <b class="clip">
        <bdi>{about?.text || id}</bdi>
      </b>
      {about?.text && <span class="inbox-id clip">{id}</span>}
      {parent !== null && <span class="inbox-id clip">thread of {parent}</span>}
    </span>
  );
}

/** The failure, the reason that it is stuck, or the question; else the last text. */
function Why({ line: { id, state, failure, asks, last, about } }: { line: InboxLine }) {
  const stuck = stuckIn.value.get(id);
  if (state === 'failed' && failure)
    return (
      <span class="inbox-why clip">
        {nameOf(failure.agent)}: {failure.message || failure.code}
      </span>
    );
  if (stuck)
    return (
      <span class="inbox-why clip">
        {nameOf(stuck.agent)} <span class="problem">{stuckWords(stuck)}</span>
        {stuck.reason.kind === 'unanswered' && `: ${stuck.reason.text}`}
      </span>
    );
  if (state === 'asks' && asks)
    return (
      <span class="inbox-why inbox-asked">
        <span class="clip">
          {nameOf(asks.agent)} {asks.kind === 'approval' ? 'wants to run' : 'asks:'} {asks.text}
          {asks.count > 1 && ` (and ${asks.count - 1} more)`}
        </span>
        <Due at={asks.deadline} />
      </span>
    );
  if (!last || last.text === about?.text) return <span class="inbox-why clip" />;
  return (
    <span class="inbox-why clip">
      <bdi>{last.name}</bdi>: <bdi>{last.text}</bdi>
    </span>
  );
}
