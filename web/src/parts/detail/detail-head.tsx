import type { ConversationId } from '../../../../src/events/index.ts';
import type { AgentView, TurnView } from '../../../../src/library/projection/model.ts';
import { shownCondition } from '../../../../src/library/projection/needs.ts';
import { Condition, CONDITION_WORDS } from '../../shared/condition.tsx';
import { Copy } from '../../shared/copy.tsx';
import { clock } from '../../shared/format.ts';
import { Go } from '../../shared/go.tsx';
import { shown } from '../../state/live.ts';
import { route } from '../../state/route.ts';
import { chosen, isTurnOver, NEXT } from './chosen.ts';
import { commandsOf, type Offer } from './commands.ts';
import { ForkButton } from './fork-button.tsx';
import { RerunButton } from './rerun-button.tsx';
import { OfferButton } from './offer-button.tsx';

/** The agent, the turn, and the commands that are legal now. */
export function DetailHead() {
  const { agent, agentId, number, isNext } = chosen.value;
  return (
    <header class="detail-head">
      <div class="detail-title">
        <h2>
          <span class="detail-name" title={agent?.name ?? agentId ?? ''}>
            {agent?.name ?? agentId}
          </span>
          {(isNext || number !== null) && (
            <>
              <span class="detail-slash" aria-hidden="true">
                /
              </span>
              <span>{isNext ? 'next prompt' : `turn ${number}`}</span>
            </>
          )}
        </h2>
        <Commands />
      </div>
      <Ids />
    </header>
  );
}

function Ids() {
  const { agent, agentId, turn, turnId, isNext } = chosen.value;
  return (
    <p class="detail-ids">
      {isTurnOver.value && turn && agent ? (
        <Then turn={turn} agent={agent} />
      ) : (
        <>
          {agent && (
            <span role="status">
              <Condition of={shownCondition(agent)} />
            </span>
          )}
          {turnId !== null && <Copy text={turnId} />}
          {turn && turn.status !== 'done' && turn.status !== agent?.condition && (
            <span class={`detail-${turn.status}`}>{turn.status}</span>
          )}
        </>
      )}
      {isNext && <span>as it would be sent now</span>}
      {!isNext && agentId !== null && (
        <Go to={{ turn: NEXT, agent: agentId, tab: 'prompt', step: null, vs: null }}>next prompt</Go>
      )}
      {turn && <Forks of={turn} />}
    </p>
  );
}

/** How a turn ended, and a link to what its agent does now. */
function Then({ turn, agent }: { turn: TurnView; agent: AgentView }) {
  return (
    <>
      <span class={`detail-${turn.status}`}>
        {turn.status}
        {turn.endedAt !== null && ` at ${clock(turn.endedAt)}`}
      </span>
      <Copy text={turn.id} />
      <Go
        to={{ turn: agent.turn ?? agent.lastTurn, agent: agent.id, tab: 'state', step: null, vs: null }}
        title="What the agent does now"
      >
        now {CONDITION_WORDS[shownCondition(agent)]}
      </Go>
    </>
  );
}

/** The conversations forked from events of this turn. */
function Forks({ of: { from, to } }: { of: TurnView }) {
  const forks = shown.value?.forks ?? [];
  return forks
    .filter(({ seq }) => seq >= from && seq <= (to ?? seq))
    .map(({ conversation, seq }) => (
      <Go key={conversation} to={{ conversation }} title={`Forked at event ${seq}`}>
        forked to {conversation}
      </Go>
    ));
}

function Commands() {
  const { actor, agentId, turn, turnId } = chosen.value;
  const { at, conversation } = route.value;
  if (agentId === null) return null;
  const commands =
    // Commands belong to the agent's current turn, not to one that has ended.
    conversation === null || isTurnOver.value
      ? []
      : commandsOf({ actor, conversation: conversation as ConversationId, agent: agentId, turn: turnId });
  const key = ({ command: { command } }: Offer) => `${command} ${agentId} ${turnId}`;
  if (at !== null) {
    return <p class="detail-reason">As it was after event {at}. Go live to pause, retry or fork.</p>;
  }
  return (
    <div class="detail-commands" role="group" aria-label="Available commands">
      {commands.map((offer) => (
        <OfferButton
          key={key(offer)}
          offer={offer}
          label={offer.label}
          class={offer.isMain ? 'button-main' : ''}
        />
      ))}
      {turn && <ForkButton turn={turn.id} key={turn.id} />}
      {turn && <RerunButton turn={turn} key={`again ${turn.id}`} />}
    </div>
  );
}
