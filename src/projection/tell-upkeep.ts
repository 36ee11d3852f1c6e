import { isAbout } from '../events/aspects.ts';
import type { Event, EventOf } from '../events/index.ts';

/** Bookkeeping in words: who takes part, how relief went, what became of the prompt; null for anything else. */
export function tellUpkeep(event: Event): string | null {
  if (!isAbout(event, 'upkeep')) return null;
  switch (event.kind) {
    case 'joined':
      return `@${event.body.agent} joins (${event.body.policy})`;
    case 'left': {
      const { agent, reason, blocked } = event.body;
      return `@${agent} ${blocked ? 'is blocked' : 'leaves'}${reason === '' ? '' : `: ${reason}`}`;
    }
    case 'mode.changed':
      return `the mode is now ${event.body.mode}${event.body.run === undefined ? '' : ` (${event.body.run})`}`;
    case 'archived':
    case 'reopened':
      return `${event.kind}${event.body.reason === '' ? '' : `: ${event.body.reason}`}`;
    case 'command':
      return tellCommand(event);
    case 'compaction': {
      const { number, upTo, strategy, reason, tokens } = event.body;
      return `compaction ${number} of 1–${upTo} by ${strategy} (${reason}): ${tokens.before} tokens become ${tokens.after}`;
    }
    case 'compaction.started':
    case 'compaction.pruned':
    case 'compaction.summarising':
    case 'compaction.done':
    case 'compaction.failed': {
      const { agent, reason, strategy, tokens, message } = event.body;
      const phase = event.kind.slice('compaction.'.length);
      const after = tokens.after === null ? '' : ` → ${tokens.after}`;
      const how = strategy === undefined ? '' : ` by ${strategy}`;
      return `@${agent} ${phase}${how} (${reason}): ${tokens.before}${after} tokens${message === undefined ? '' : `: ${message}`}`;
    }
    case 'prune': {
      const { events, reason, tokens } = event.body;
      return `${events.length} tool result(s) are shown as placeholders (${reason}): ${tokens.before} → ${tokens.after} tokens`;
    }
    case 'baseline': {
      const { epoch, provider, model, reason } = event.body;
      return `epoch ${epoch} on ${provider} ${model}: ${reason}`;
    }
  }
}

function tellCommand({ author, body }: EventOf<'command'>): string {
  const { command, agent, turn, fork, from } = body;
  const about = turn ?? (agent === undefined ? '' : `@${agent}`);
  const place = fork ?? from;
  const forked = place ? `${fork ? 'to' : 'from'} ${place.conversation} at ${place.seq}` : '';
  return [`${author.name}: ${command}`, about, forked].filter((part) => part !== '').join(' ');
}
