import { readFileSync } from 'node:fs';
import path from 'node:path';
import { createProgram } from '../../src/cli/program.ts';

export const ROOT = path.resolve(import.meta.dirname, '../..');
export const readRoot = (file: string) => readFileSync(path.join(ROOT, file), 'utf8');

/** What the command line does not know of these arguments: the command, or options of it. */
export function unknownIn([name = '', ...args]: readonly string[]): string[] {
  const command = createProgram().commands.find((each) => each.name() === name);
  if (!command) return [name];
  const known = command.options.map(({ long }) => long);
  return args.filter((each) => each.startsWith('--') && !known.includes(each));
}
