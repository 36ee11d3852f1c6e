import { createInterface } from 'node:readline/promises';
import type { Author, TaskInfo } from '../../src/index.ts';
import type { People } from './story.ts';

/** The person at the terminal, who answers in the name of someone allowed to. */
export function keyboard(): People & Disposable {
  const terminal = createInterface({ input: process.stdin, output: process.stdout });
  return {
    async answer({ text = '', choices, by }) {
      const offered = choices ? ` [${choices.join(' / ')}]` : '';
      return { by: personOf(by), content: await terminal.question(`? ${text}${offered} `) };
    },
    async decide({ tool, args, by }: TaskInfo) {
      const typed = await terminal.question(`? Allow ${tool} ${args} [y/n, and a note] `);
      const [, yes, note] = /^\s*(y(?:es)?\b)?(?:n(?:o)?\b)?[\s,:]*(.*)$/i.exec(typed) ?? [];
      return { by: personOf(by), approved: yes !== undefined, ...(note && { note }) };
    },
    [Symbol.dispose]: () => terminal.close(),
  };
}

function personOf([id = 'you']: readonly string[] = []): Author {
  return { kind: 'user', id, name: id };
}
