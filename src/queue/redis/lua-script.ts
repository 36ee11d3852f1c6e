import { createHash } from 'node:crypto';
import type { Redis } from 'ioredis';

/** A script that Redis runs as one step. Only its digest is sent, unless the server does not know it yet. */
export interface LuaScript {
  run(redis: Redis, keys: readonly string[], args: readonly (string | number)[]): Promise<unknown>;
}

export function luaScript(text: string): LuaScript {
  const digest = createHash('sha1').update(text).digest('hex');
  return {
    async run(redis, keys, args) {
      try {
        return await redis.evalsha(digest, keys.length, ...keys, ...args);
      } catch (error) {
        if (!(error instanceof Error && error.message.startsWith('NOSCRIPT'))) throw error;
        return redis.eval(text, keys.length, ...keys, ...args);
      }
    },
  };
}
