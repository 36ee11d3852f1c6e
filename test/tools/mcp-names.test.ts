import fc from 'fast-check';
import { expect, test } from 'vitest';
import { createRedactor } from '../../src/tools/mcp/messages.ts';
import { toolName } from '../../src/tools/mcp/wrap-tool.ts';

test('whatever a server calls its tools, models are told names that all vendors accept', () => {
  const server = fc.stringMatching(/^[A-Za-z][A-Za-z0-9_-]{0,31}$/);
  fc.assert(
    fc.property(server, fc.string({ unit: 'binary', maxLength: 200 }), (name, tool) => {
      expect(toolName(name, tool)).toMatch(/^[A-Za-z][A-Za-z0-9_-]{0,63}$/);
    }),
  );
  expect(toolName('gh', 'search_code')).toBe('gh__search_code');
});

test('no value of a variable is left in a text, wherever and however often it stands, plain or in JSON', () => {
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

test('a value that holds another is taken out whole, and a short one is left', () => {
  const redact = createRedactor({ SHORT: 'dev', PART: 'secret', ALL: 'a secret thing' });
  expect(redact('dev: a secret thing, secret')).toBe('dev: [ALL], [PART]');
});
