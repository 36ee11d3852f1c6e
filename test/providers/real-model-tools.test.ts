import path from 'node:path';
import { expect } from 'vitest';
import * as z from 'zod';
import { defineTool } from '../../src/tools/tool.ts';
import { startLlamaServer } from '../services/llama-server.ts';
import { eventsOf, openReal, withRealModel } from './real-model-stage.ts';

const TEMPLATE = path.join(import.meta.dirname, 'real-model-tools.jinja');
/**
 * Required calls may come after any words without a bracket, which this model never ends by itself. The bias makes the
 * bracket its first sign, and from there on llama.cpp's grammar decides.
 */
const FORCED = { tool_choice: 'required', parallel_tool_calls: false, logit_bias: [['{"', 100]] };

withRealModel(
  'a real model’s tool call has arguments that fit, and its result goes back to it',
  async (llama) => {
    const seen: string[] = [];
    const look = defineTool({
      name: 'look_up_weather',
      description: 'Tells the weather of a city.',
      schema: z.strictObject({ city: z.enum(['Bern', 'Basel']) }),
      run({ city }) {
        seen.push(city);
        return `rain in ${city}`;
      },
    });
    await using server = await startLlamaServer(llama, {
      contextTokens: 2_048,
      more: { 'chat-template-file': TEMPLATE },
    });
    const agent = { tools: [look.name], maxOutputTokens: 96, providerOptions: FORCED };
    await using troupe = await openReal(server.url, agent, { tools: [look], limits: { maxSteps: 2 } });
    await troupe.ask('c', 'What is the weather in Bern?');
    const events = await eventsOf(troupe, 'c');
    const results = events.flatMap((event) => (event.kind === 'tool.result' ? [event.body] : []));
    expect(results[0]).toMatchObject({ name: look.name, content: `rain in ${seen[0]}` });
    // Every answer must call, so the turn ends at its limit of steps.
    expect(events.at(-1)).toMatchObject({ kind: 'turn.failed', body: { code: 'step_limit' } });
  },
);
