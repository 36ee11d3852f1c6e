import path from 'node:path';

/** One `FROM` and what follows it. */
export interface Stage {
  base: string;
  name: string;
  instructions: Instruction[];
}

export interface Instruction {
  word: string;
  text: string;
}

/** The stages of a Dockerfile, lines joined and arguments of the build replaced by their defaults. Knows what ours uses. */
export function readDockerfile(text: string): Stage[] {
  const lines = text
    .split('\n')
    .filter((line) => !/^\s*#/.test(line))
    .join('\n')
    .replace(/\\\n/g, ' ');
  const defaults: Record<string, string> = {};
  const stages: Stage[] = [];
  for (const [, word = '', rest = ''] of lines.matchAll(/^([A-Z]+) +(.+)$/gm)) {
    const stage = stages.at(-1);
    if (word === 'ARG' && !stage) {
      const [name = '', value = ''] = rest.split('=');
      defaults[name] = value;
    } else if (word === 'FROM') {
      const [base = '', , name = ''] = rest.split(/ +/);
      const named = base.replace(/\$\{(\w+)\}/g, (_, each: string) => defaults[each] ?? '');
      stages.push({ base: named, name, instructions: [] });
    } else stage?.instructions.push({ word, text: rest });
  }
  return stages;
}

/** The sources and the target of a `COPY`, and the stage they come from; null: the folder of the build. */
export function readCopy(text: string): { from: string | null; sources: string[]; target: string } {
  const words = text.split(/ +/);
  const from = words[0]?.startsWith('--from=') ? (words.shift() ?? '').slice('--from='.length) : null;
  const target = words.pop() ?? '';
  return { from, sources: words, target };
}

/** Whether a file belongs to the folder of the build by a `.dockerignore`: the last pattern that matches it or a parent decides. */
export function createIgnore(text: string): (file: string) => boolean {
  const rules = text.split('\n').filter((line) => line !== '' && !line.startsWith('#'));
  return (file) => {
    let isIgnored = false;
    for (const rule of rules) {
      const isKept = rule.startsWith('!');
      if (matches(file, isKept ? rule.slice(1) : rule)) isIgnored = !isKept;
    }
    return isIgnored;
  };
}

function matches(file: string, pattern: string): boolean {
  const depth = pattern.split('/').length;
  // For Docker a star also stands for a name that begins with a dot.
  const plain = (text: string) => text.replaceAll(/(^|\/)\./g, '$1_.');
  return path.matchesGlob(plain(file.split('/').slice(0, depth).join('/')), plain(pattern));
}
