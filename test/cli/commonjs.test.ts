import { expect, test } from 'vitest';
import { workplace } from './harness.ts';

const AGENTS = `import { rules } from './rules.ts';
export const troupe = {
  agents: [{ id: 'bo', provider: 'scripted', script: { rules } }],
  defaults: { respondWhenUnaddressed: 'bo' },
};`;

test('agents.ts is a module in a package that npm init wrote as commonjs, and so is what it imports', async () => {
  using place = workplace({ agents: null });
  place.write('package.json', { name: 'fresh', type: 'commonjs' });
  place.write('rules.ts', `export const rules: { reply: string }[] = [{ reply: 'ok' }];`);
  const file = place.write('agents.ts', AGENTS);
  for (const flags of [[], ['--no-reload']]) {
    await using _dev = await place.dev([file, ...flags]);
    expect((await place.call(['send', 'c', 'hi', '--wait'])).out).toContain('ok');
  }
});
