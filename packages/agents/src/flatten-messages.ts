import type { PromptMessage } from './troupe.ts';

/** A prompt for a command-line program: instructions, and one text per other message. */
interface FlatPrompt {
  /** Empty if there are none. */
  system: string;
  texts: string[];
}

/** The agent's own texts and calls are put in brackets, because such a program accepts user messages only. */
export function flattenMessages(messages: readonly PromptMessage[]): FlatPrompt {
  const system: string[] = [];
  const texts: string[] = [];
  for (const message of messages) {
    if (message.role === 'system') system.push(message.content);
    else texts.push(textOf(message));
  }
  return { system: system.join('\n\n'), texts };
}

function textOf(message: Exclude<PromptMessage, { role: 'system' }>): string {
  switch (message.role) {
    case 'user':
      return message.content;
    case 'tool':
      return `[result of ${message.name}]\n${message.content}`;
    case 'assistant': {
      const calls = (message.calls ?? []).map(({ name, args }) => `[you called ${name} with ${args}]`);
      const said = message.content === '' ? [] : [`[you said]\n${message.content}`];
      return [...said, ...calls].join('\n');
    }
  }
}
