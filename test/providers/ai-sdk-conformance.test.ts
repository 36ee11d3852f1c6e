import { describe, test } from 'vitest';
import { createAiSdk } from '../../src/providers/ai-sdk/ai-sdk.ts';
import type { AiSdkModel } from '../../src/providers/ai-sdk-model.ts';
import type { ReplyLimitSettings } from '../../src/providers/reply-limits.ts';
import {
  type FakeHandler,
  type FakeReply,
  type FakeServer,
  startFakeOpenAi,
  startFakeOpenAiResponses,
} from '../../packages/testing/src/fake-vendors.ts';
import { type MakeProvider, providerConformance } from '../../packages/testing/src/provider-conformance.ts';
import { sceneServer } from '../support/scene-server.ts';
import { chatModel, geminiModel, isGeminiScene, responsesModel, startFakeGemini } from './ai-sdk-stage.ts';

function over(
  start: (handler: FakeHandler) => Promise<FakeServer>,
  model: (url: string, limits: ReplyLimitSettings) => AiSdkModel,
  applies: (scene: FakeReply) => boolean = () => true,
): MakeProvider {
  return async (scene, replyLimits) => {
    if (scene !== 'unreachable' && !applies(scene)) return null;
    const { url, ...fixture } = await sceneServer(scene, start);
    return { ...fixture, provider: createAiSdk(model(url, replyLimits), { replyLimits }) };
  };
}

/** Anthropic's package is among the adapters of conformance.test.ts. */
const VENDORS: Record<string, MakeProvider> = {
  // OpenAI's own chat completions hold no reasoning.
  'openai chat': over(startFakeOpenAi, chatModel, ({ reasoning }) => reasoning === undefined),
  'openai responses': over(startFakeOpenAiResponses, responsesModel),
  google: over(startFakeGemini, geminiModel, isGeminiScene),
};

describe.each(Object.entries(VENDORS))('the AI SDK with %s', (_, make) => {
  for (const { group, name, ...rest } of providerConformance(make))
    test(`${group}: ${name}`, () => rest.run());
});
