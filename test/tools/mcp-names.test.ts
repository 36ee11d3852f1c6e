import fc from 'fast-check';
import { expect, test } from 'vitest';
import { createRedactor } from '../../src/tools/mcp/wire.ts';
import { toolName } from '../../src/tools/mcp/settings.ts';

test('models get tool names that all vendors accept, whatever a server calls its tools', () => {
  const server = fc.stringMatching(/^[A-Za-z][A-Za-z0-9_-]{0,31}$/);
  fc.assert(
    fc.property(server, fc.string({ unit: 'binary', maxLength: 200 }), (name, tool) => {
      expect(toolName(name, tool)).toMatch(/^[A-Za-z][A-Za-z0-9_-]{0,63}$/);
    }),
  );
  expect(toolName('gh', 'search_code')).toBe('gh__search_code');
});

test('every value of a variable is removed from a text, plain or in JSON', () => {
  const secret = fc
    .string({ unit: 'binary', minLength: 6, maxLength: 40 })
    .filter((value) => !/[ a-e]/.test(value));
  fc.assert(
    fc.property(secret, fc.array(fc.stringMatching(/^[ a-e]{0,5}$/)), (value, around) => {
      const redact = createRedactor({ V: value });
      expect(redact(around.join(value))).toBe(around.join('[V]'));
      expect(redact(JSON.stringify(around.join(value)))).toBe(JSON.stringify(around.join('[V]')));
    }),
    { examples: [['$&"\\\n$`', ['a', 'b']]] },
  );
});

test('a value that contains another is removed whole, and a short one stays', () => {
  const redact = createRedactor({ SHORT: 'dev', PART: 'secret', ALL: 'a secret thing' });
  expect(redact('dev: a secret thing, secret')).toBe('dev: [ALL], [PART]');
});
