import { expect } from 'vitest';
import { startLlamaServer } from '../services/llama-server.ts';
import { eventsOf, openReal, withRealModel } from './real-model-stage.ts';

withRealModel(
  'a real server killed in mid-stream is named, and the turn goes on when it is back',
  async (llama) => {
    const size = { contextTokens: 2_048 };
    const first = await startLlamaServer(llama, size);
    await using stack = new AsyncDisposableStack();
    stack.use(first);
    await using troupe = await openReal(first.url, { maxOutputTokens: 64 });
    const asked = troupe.stream('c', 'Count from one to a thousand in words.');
    for (let step = await asked.next(); !(step.done === true || step.value.type === 'text');)
      step = await asked.next();
    await first[Symbol.asyncDispose]();
    const failures = async () =>
      (await eventsOf(troupe, 'c')).flatMap((event) => (event.kind === 'error' ? [event.body.code] : []));
    await expect.poll(failures).not.toEqual([]);
    expect((await failures())[0]).toBe('provider_truncated');
    stack.use(await startLlamaServer(llama, { ...size, port: first.port }));
    let step = await asked.next();
    while (step.done !== true) step = await asked.next();
    expect(step.value.outcome).toBe('answered');
    const events = await eventsOf(troupe, 'c');
    expect(events.map(({ kind }) => kind)).toContain('turn.done');
    expect(events.filter(({ kind }) => kind === 'turn.started')).toHaveLength(1);
  },
);
