import type { AgUiEvent } from './protocol.ts';

interface Thought {
  /** Id of its message. */
  id: string;
  said: string;
  isOpen: boolean;
  owner: { subagentRunId?: string };
}

/** What models think. It is in no snapshot: clients keep it, as does this door what is void of it. */
export class Thinking {
  /** What the client has, by the id of the message. */
  had: ReadonlyMap<string, string> = new Map();
  readonly #thoughts = new Map<string, Thought>();

  start(block: string, owner: { subagentRunId?: string }): void {
    this.#thoughts.set(block, { id: block, said: '', isOpen: false, owner });
  }

  grow(block: string, text: string): AgUiEvent[] {
    const thought = this.#thoughts.get(block);
    if (!thought) return [];
    const at = thought.said.length;
    thought.said += text;
    const own = this.had.get(thought.id);
    if (own === undefined) return this.#tell(thought, text);
    if (own.startsWith(text, at)) return [];
    const rest = own.slice(at);
    if (text.startsWith(rest)) return this.#tell(thought, text.slice(rest.length));
    // The client has thoughts of a call that was void: these are others.
    thought.id = this.#unused(thought.id);
    return this.#tell(thought, thought.said);
  }

  end(block: string): AgUiEvent[] {
    const thought = this.#thoughts.get(block);
    if (!thought?.isOpen) return [];
    thought.isOpen = false;
    const { id: messageId, owner } = thought;
    return [
      { type: 'REASONING_MESSAGE_END', messageId, ...owner },
      { type: 'REASONING_END', messageId, ...owner },
    ];
  }

  endAll(): AgUiEvent[] {
    return [...this.#thoughts.keys()].flatMap((block) => this.end(block));
  }

  #tell(thought: Thought, delta: string): AgUiEvent[] {
    const { id: messageId, owner, isOpen } = thought;
    const content: AgUiEvent = { type: 'REASONING_MESSAGE_CONTENT', messageId, delta, ...owner };
    if (isOpen) return [content];
    thought.isOpen = true;
    return [
      { type: 'REASONING_START', messageId, ...owner },
      { type: 'REASONING_MESSAGE_START', messageId, role: 'reasoning', ...owner },
      content,
    ];
  }

  #unused(id: string): string {
    let number = 2;
    while (this.had.has(`${id}~${number}`)) number += 1;
    return `${id}~${number}`;
  }
}
