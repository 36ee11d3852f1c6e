import type { ModelRequest, Provider } from '../providers/provider.ts';
import type { ReplyLimitSettings } from '../providers/reply-limits.ts';
import type { FakeReply } from './fake-reply.ts';

/** A provider whose next answers are all the scene. */
export interface ProviderFixture extends AsyncDisposable {
  provider: Provider;
  model?: string;
  /** How many requests the vendor has received; absent where there is no vendor. */
  requests?: () => number;
  /** Resolves when the vendor has received the first request. */
  arrived?(): Promise<{ gone: Promise<void> }>;
  /** A program stands between the adapter and the vendor, and makes of an answer what it likes. */
  isProgram?: true;
}

/** `unreachable` is a vendor that does not listen. */
export type ProviderScene = FakeReply | 'unreachable';

/** Null where the scene means nothing to the adapter: its cases then pass without having been tried. */
export type MakeProvider = (
  scene: ProviderScene,
  replyLimits: ReplyLimitSettings,
) => Promise<ProviderFixture | null>;

export type AddCase = (
  group: string,
  name: string,
  scene: ProviderScene,
  run: (fixture: ProviderFixture, request: ModelRequest) => Promise<void>,
  replyLimits?: ReplyLimitSettings,
) => void;
