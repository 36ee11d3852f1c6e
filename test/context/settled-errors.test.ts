import { describe, expect, test } from 'vitest';
import { collectFacts } from '../../src/context/extract/facts.ts';
import type { Event } from '../../src/events/index.ts';
import { agentSays, at, call, personSays, result } from '../support/extract-events.ts';

const factsOf = (...events: Event[]) => collectFacts(at(events), null);
const errorsAfter = (...events: Event[]) => factsOf(...events).errors.map(({ text }) => text);
const run = (command: string) => call('bash', { command });
const FAILS = result('src/a.ts(3,1): error TS2739: Type is missing', 'failed');

describe('errors', () => {
  test('leave when the same command succeeds, whatever stands around it', () => {
    expect(errorsAfter(run('cd /repo && npm run check 2>&1 | tail -5'), FAILS)).toHaveLength(1);
    expect(errorsAfter(run('npm run check'), FAILS, run('cd /repo && npm run check'), result('ok'))).toEqual(
      [],
    );
    expect(errorsAfter(run('npm run check'), FAILS, run('npm run build'), result('ok'))).toHaveLength(1);
  });

  test('are those of the last attempt', () => {
    const other = result('src/b.ts(1,1): error TS2305: No such member', 'failed');
    expect(errorsAfter(run('npm run check'), FAILS, run('npm run check'), other)).toEqual([
      'src/b.ts(1,1): error TS2305: No such member',
    ]);
  });

  test('of a tool leave when it succeeds with the same file', () => {
    const edit = (path: string) => call('edit', { path, old: 'a', new: 'b' });
    const fails = result('Could not find the text in src/a.ts', 'failed');
    expect(errorsAfter(edit('src/a.ts'), fails, edit('src/b.ts'), result('done'))).toHaveLength(1);
    expect(errorsAfter(edit('src/a.ts'), fails, edit('src/a.ts'), result('done'))).toEqual([]);
  });

  test('leave when somebody says that they are fixed', () => {
    expect(errorsAfter(run('make'), FAILS, agentSays('I fixed the type in a.ts.'))).toEqual([]);
    expect(errorsAfter(run('make'), FAILS, agentSays('TS2739 is behoben.'))).toEqual([]);
    expect(errorsAfter(run('make'), FAILS, agentSays('The type in a.ts is not fixed.'))).toHaveLength(1);
    expect(errorsAfter(run('make'), FAILS, agentSays('I fixed the manual.'))).toHaveLength(1);
  });

  test('are not lines of code or words about a failure', () => {
    expect(
      errorsAfter(
        call('read', { path: 'a.ts' }),
        result('x\n// Output error as JSON\n# Error: none\nError: old'),
      ),
    ).toEqual([]);
    expect(errorsAfter(personSays('error cc6666\ntool error bg 3c2828'))).toEqual([]);
    expect(errorsAfter(run('grep x y'), result('Command exited with code 1', 'failed'))).toEqual([]);
    expect(errorsAfter(call('look_up', { id: 7 }), result('Error: user not found'))).toEqual([
      'Error: user not found',
    ]);
  });
});

describe('modified files', () => {
  const modifiedBy = (command: string) => factsOf(run(command)).filesModified;

  test.each([
    ["sed -i '' 's/this.chatContainer.addChild(/this.add(/' src/tui.ts", ['src/tui.ts']],
    ['sed -i -e "s|../theme/theme|./theme|g" src/a.ts src/b.ts', ['src/a.ts', 'src/b.ts']],
    ['npm test > /dev/null 2>&1', []],
    ['mkdir -p src/core/tools', []],
    ['mv src/a.ts src/core/', ['src/a.ts']],
    ["cat > notes.md <<'EOF'\nrm src/keep.ts\nEOF", ['notes.md']],
    ['git checkout -b feature/a.b', []],
    ['echo "a > b/c.ts"', []],
    ['node build.js | tee out/log.txt', ['out/log.txt']],
  ])('are found in %j', (command, files) => {
    expect(modifiedBy(command)).toEqual(files);
  });
});
