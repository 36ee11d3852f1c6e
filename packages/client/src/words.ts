import type { Event, StreamFrame } from './troupe.ts';

/** A change of the words that agents are writing. Joined since the last `void` of the turn, they are what it has said. */
export type Words =
  /** Next words of this agent. */
  | { type: 'text'; agent: string; turn: string; text: string }
  /** What was told of this answer of the model does not count: it begins anew. */
  | { type: 'void'; agent: string; turn: string };

interface Spoken {
  place: string;
  said: string;
}

/**
 * Tells new words from those that came before, over reconnects and repeated attempts. When the log has an answer, what was
 * missed of it comes first, so that words come once and whole.
 */
export function words(): (frame: StreamFrame) => Words[] {
  const turns = new Map<string, Spoken>();

  function ofEvent({ kind, turn, author, body }: Event): Words[] {
    if (turn === undefined || author.kind !== 'agent') return [];
    const agent = author.id;
    const spoken = turns.get(turn);
    if (kind === 'message' || kind === 'step') {
      turns.delete(turn);
      const { content } = body;
      const said = spoken?.said ?? '';
      if (content.startsWith(said)) return told(agent, turn, content.slice(said.length));
      return [{ type: 'void', agent, turn }, ...told(agent, turn, content)];
    }
    if (kind !== 'turn.failed' && kind !== 'turn.aborted') return [];
    turns.delete(turn);
    return spoken?.said ? [{ type: 'void', agent, turn }] : [];
  }

  return (frame) => {
    if (frame.type === 'event') return ofEvent(frame.event);
    if (frame.type !== 'text') return [];
    const { agent, turn, attempt, step, round, index, text } = frame;
    const place = `${attempt} ${step} ${round}`;
    const known = turns.get(turn);
    const isNew = known?.place !== place;
    const spoken = isNew ? { place, said: '' } : known;
    turns.set(turn, spoken);
    const start: Words[] = isNew && known?.said ? [{ type: 'void', agent, turn }] : [];
    // A piece further on waits for the log: words between were missed.
    if (index > spoken.said.length) return start;
    const more = text.slice(spoken.said.length - index);
    spoken.said += more;
    return [...start, ...told(agent, turn, more)];
  };
}

function told(agent: string, turn: string, text: string): Words[] {
  return text === '' ? [] : [{ type: 'text', agent, turn, text }];
}
