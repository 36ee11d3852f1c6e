import { ANTHROPIC, isFound, loadWith } from '../../base/optional-packages.ts';

/** Anthropic's SDK. Throws `package_missing`. */
export async function loadAnthropicSdk() {
  return await loadWith(ANTHROPIC, async () => {
    const [{ Anthropic }, { transformJSONSchema }] = await Promise.all([
      import('@anthropic-ai/sdk'),
      import('@anthropic-ai/sdk/lib/transform-json-schema'),
    ]);
    return { Anthropic, transformJSONSchema };
  });
}

/** Checks that the SDK is there, usually without loading it. Throws `package_missing`. */
export async function requireAnthropicSdk(): Promise<void> {
  if (!isFound('@anthropic-ai/sdk')) await loadAnthropicSdk();
}
