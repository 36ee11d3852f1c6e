import { useState } from 'preact/hooks';
import { connection } from '../state/connection.ts';
import { caller } from '../state/caller.ts';
import { leave, mode, serverToken, useToken } from '../state/settings.ts';
import '../style/caller.css';

/** What each scope allows a person to do on this page. */
const SCOPE_WORDS: Record<string, string> = {
  read: 'read conversations',
  write: 'send messages, answer, approve',
  operate: 'pause, abort, retry, fork',
  admin: 'keys and webhooks',
  erase: 'erase what a person has said',
};

/** Who uses the page: in which tenant, with which key, under whose name, and with which rights. */
export function WhoAmI() {
  const found = caller();
  const [isChanging, setChanging] = useState(false);
  if (connection.value.state === 'token' || found === null) return null;
  const { id, tenant, author, scopes, conversations } = found;
  const isKey = serverToken() !== null;
  return (
    <details class="caller">
      <summary title={`${author?.name ?? 'Operator'}, tenant ${tenant}`}>
        <span class="caller-name clip">{author?.name ?? 'Operator'}</span>
        {tenant !== 'default' && <span class="caller-tenant clip">{tenant}</span>}
      </summary>
      <div class="caller-box">
        <dl>
          <dt>Tenant</dt>
          <dd>{tenant}</dd>
          <dt>Key</dt>
          <dd>{isKey ? <code>{id}</code> : 'none: whoever can reach this server may use it'}</dd>
          <dt>Writes as</dt>
          <dd>{author ? `${author.name} (${author.id})` : 'Operator; the key is bound to nobody'}</dd>
          <dt>Conversations</dt>
          <dd>{conversations?.join(', ') ?? 'all of the tenant'}</dd>
          <dt>May</dt>
          <dd>
            <ul>
              {Object.entries(SCOPE_WORDS).map(([scope, words]) => {
                const has =
                  (scopes as readonly string[]).includes(scope) && (scope === 'read' || mode !== 'read-only');
                return (
                  <li key={scope} class={has ? '' : 'quiet'}>
                    {has ? '✓' : '–'} {words} <code>{scope}</code>
                  </li>
                );
              })}
            </ul>
            {mode === 'read-only' && <p class="quiet">The server was started with --read-only.</p>}
          </dd>
        </dl>
        {isChanging ? (
          <KeyForm />
        ) : (
          <p class="caller-acts">
            <button type="button" class="button" onClick={() => setChanging(true)}>
              Use another key
            </button>
            {isKey && (
              <button type="button" class="button" onClick={leave}>
                Leave
              </button>
            )}
          </p>
        )}
      </div>
    </details>
  );
}

/** Asks for a key, which is kept for this tab. */
export function KeyForm() {
  const [token, setToken] = useState('');
  return (
    <form
      class="caller-key"
      onSubmit={(event) => {
        event.preventDefault();
        useToken(token.trim());
      }}
    >
      <input
        type="password"
        autocomplete="off"
        aria-label="Token"
        placeholder="trp_… or TROUPE_TOKEN"
        value={token}
        onInput={(event) => setToken(event.currentTarget.value)}
      />
      <button type="submit" class="button" disabled={token.trim() === ''}>
        Open
      </button>
    </form>
  );
}
