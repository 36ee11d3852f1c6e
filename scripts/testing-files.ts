import { readFileSync } from 'node:fs';
import path from 'node:path';
import { ROOT } from './packed.ts';

/** The files of docs/how-to/testing.md, by name: the blocks whose first line is a comment with a name. */
export function testingFiles(): Map<string, string> {
  const doc = readFileSync(path.join(ROOT, 'docs/how-to/testing.md'), 'utf8');
  const blocks = [...doc.matchAll(/^```ts\n([^]*?)^```$/gm)].map(([, text = '']) => text);
  return new Map(
    blocks.map((text) => {
      const name = /^\/\/ (\S+\.ts)\n/.exec(text)?.[1];
      if (name === undefined) throw new Error(`a block of docs/how-to/testing.md names no file:\n${text}`);
      return [name, text];
    }),
  );
}
