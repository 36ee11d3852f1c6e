import type { AgentId, Command, ConversationId, TurnId } from '../../../../src/events/index.ts';
import type { ActorStatus } from '../../../../src/library/troupe.ts';

import { mayGive } from '../../state/caller.ts';

interface About {
  actor: ActorStatus | null;
  conversation: ConversationId;
  agent: AgentId;
  turn: TurnId | null;
}

export interface Offer {
  command: Command;
  label: string;
  /** The machine event that the command causes; null if that depends on the state. */
  event: string | null;
  isMain?: boolean;
}

/** The commands a person may give an agent now, most useful first. */
export function commandsOf({ actor, conversation, agent, turn }: About): Offer[] {
  if (!actor) return [];
  const about = { conversation, agent };
  const running = actor.turn;
  const last = actor.lastTurn;
  const offers: (Offer | null)[] = [
    // Only the last turn can be retried; for earlier ones see `Fork`.
    last === null || (turn !== null && turn !== last)
      ? null
      : { command: { command: 'retry', turn: last }, label: 'Retry', event: null, isMain: true },
    running === null
      ? null
      : { command: { command: 'abort', turn: running }, label: 'Abort', event: 'ABORTED' },
    {
      command: { command: 'resume', ...about },
      label: 'Resume',
      event: actor.state === 'failed' ? 'RETRY' : 'RESUME',
      isMain: true,
    },
    { command: { command: 'reinstate', ...about }, label: 'Reinstate', event: 'REINSTATE', isMain: true },
    { command: { command: 'compact', ...about }, label: 'Compact', event: null },
    { command: { command: 'pause', ...about }, label: 'Pause', event: 'PAUSE' },
    { command: { command: 'retire', ...about }, label: 'Retire', event: 'RETIRE' },
  ];
  const can: readonly string[] = actor.can;
  return offers.filter(
    (offer) => offer !== null && can.includes(offer.command.command) && mayGive(offer.command.command),
  ) as Offer[];
}
