import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import * as z from 'zod';
import { createTroupe, defineTool, defineTroupe, loadAgentsFile, type ToolContext } from '../src/index.ts';
import type { TroupeInput } from '../src/library/config/agents-file.ts';
import { openTroupe } from '../src/library/runtime/create-troupe.ts';
import { ANA } from './support/engine-stage.ts';

interface Shop {
  prices: Map<string, number>;
}

const price = defineTool({
  name: 'price',
  description: 'Says what it costs.',
  schema: z.object({ of: z.string() }),
  needs: ['prices'],
  run: ({ of }, { app }: ToolContext<Shop>) => `${of}: ${app.prices.get(of)} euros`,
});
const rules = [{ when: { step: 2 }, reply: '{{last}}' }, { calls: [{ name: 'price', args: { of: 'rye' } }] }];
const agents = [{ id: 'bo', provider: 'scripted', script: { rules }, tools: ['price'] }] as const;
const defaults = { respondWhenUnaddressed: 'bo' } as const;
const shop = (): Shop => ({ prices: new Map([['rye', 4]]) });

test('app of a definition is opened with the troupe, told to its tools, and closed after it', async () => {
  const log: string[] = [];
  const app = async () => {
    log.push('opened');
    return { ...shop(), close: () => log.push('closed') };
  };
  const definition = defineTroupe({ app, agents, tools: [price], defaults });
  expect(log).toEqual([]);
  const troupe = await createTroupe(definition);
  expect(log).toEqual(['opened']);
  expect((await troupe.ask('c', { author: ANA, content: 'Rye?' })).text).toBe('rye: 4 euros');
  expect(log).toEqual(['opened']);
  await troupe.close();
  expect(log).toEqual(['opened', 'closed']);
});

test('it is closed by Symbol.asyncDispose if it has one, else Symbol.dispose, else close', async () => {
  const log: string[] = [];
  const close = () => log.push('close');
  const sync = { [Symbol.dispose]: () => log.push('dispose'), close };
  const both = { [Symbol.asyncDispose]: async () => log.push('asyncDispose'), ...sync };
  for (const end of [both, sync, { close }, {}]) {
    const app = () => ({ ...shop(), ...end });
    await (await createTroupe({ app, agents, tools: [price], defaults })).close();
  }
  expect(log).toEqual(['asyncDispose', 'dispose', 'close']);
});

test('app of the options takes its place, and is not closed by the troupe', async () => {
  const log: string[] = [];
  const app = () => {
    log.push('opened');
    return shop();
  };
  const given = { prices: new Map([['rye', 5]]), close: () => log.push('closed') };
  const troupe = await createTroupe({ app, agents, tools: [price], defaults }, { app: given });
  expect((await troupe.ask('c', { author: ANA, content: 'Rye?' })).text).toBe('rye: 5 euros');
  await troupe.close();
  expect(log).toEqual([]);
});

const refused = (input: object) => openTroupe({ agents, tools: [price], ...input } as TroupeInput, {});

test('an app that is missing, lacks what a tool needs, or cannot be opened is refused at the start, by name', async () => {
  await expect(refused({})).rejects.toMatchObject({
    code: 'config_invalid',
    message: expect.stringMatching(/^the tool price needs prices, and there is no app: export app = /),
    data: { lacking: [{ tool: 'price', need: 'prices' }] },
  });
  const log: string[] = [];
  await expect(refused({ app: () => ({ close: () => log.push('closed') }) })).rejects.toMatchObject({
    code: 'config_invalid',
    message: expect.stringContaining('the tool price needs prices, and app does not have it'),
  });
  expect(log).toEqual(['closed']);
  const failing = () => Promise.reject(new Error('no connection'));
  await expect(refused({ app: failing })).rejects.toMatchObject({
    code: 'config_invalid',
    message: 'app cannot be opened: no connection',
  });
  await expect(refused({ app: shop() })).rejects.toMatchObject({
    code: 'config_invalid',
    message: expect.stringContaining('app: is a function that opens it'),
  });
});

test('app is closed again if the troupe cannot be opened', async () => {
  const log: string[] = [];
  const app = () => ({ ...shop(), close: () => log.push('closed') });
  const script = { rules: [{ fail: { code: 'nonsense' } }] };
  await expect(refused({ app, agents: [{ ...agents[0], script }] })).rejects.toThrow(/nonsense/);
  expect(log).toEqual(['closed']);
});

function fileOf(text: string): string {
  const folder = mkdtempSync(path.join(tmpdir(), 'troupe-app-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const file = path.join(folder, 'agents.mjs');
  writeFileSync(file, text);
  return file;
}

const AGENTS = `agents: [{ id: 'bo', provider: 'scripted', script: { rules: [{ reply: 'hi' }] } }]`;

test('an agents file exports app beside its definition, or in it', async () => {
  const beside = await loadAgentsFile(
    fileOf(`export const app = () => ({ db: 1 });\nexport const troupe = { ${AGENTS} };`),
  );
  expect(beside.app?.()).toEqual({ db: 1 });
  const within = await loadAgentsFile(
    fileOf(`export const app = () => ({ db: 2 });\nexport const troupe = { app, ${AGENTS} };`),
  );
  expect(within.app?.()).toEqual({ db: 2 });
  const two = `export const app = () => ({ db: 1 });\nexport const troupe = { app: () => ({ db: 2 }), ${AGENTS} };`;
  await expect(loadAgentsFile(fileOf(two))).rejects.toMatchObject({
    code: 'config_invalid',
    message: expect.stringContaining('its "app" is not the "app" of its definition'),
  });
});
