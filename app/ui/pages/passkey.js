// Asks the browser to create a passkey or to sign with one when the form is submitted, and sends the answer with it.
// All texts come from the data attributes of the page.
(() => {
  const form = document.querySelector('form[data-passkey]');
  const said = document.querySelector('[data-passkey-said]');
  const answer = form.querySelector('[data-passkey-answer]');
  // A code that the user may enter instead.
  const instead = form.querySelector('[data-passkey-instead]');
  const say = (what) => {
    said.hidden = !what;
    said.textContent = what ? said.dataset[what] : '';
  };
  if (!window.PublicKeyCredential || !navigator.credentials) return say('unsupported');

  const bytes = (text) => Uint8Array.from(atob(text.replace(/-/g, '+').replace(/_/g, '/')), (c) => c.charCodeAt(0));
  const text = (buffer) => {
    const plain = Array.from(new Uint8Array(buffer), (byte) => String.fromCharCode(byte)).join('');
    return btoa(plain).replace(/\+/g, '-').replace(/\//g, '_').replace(/=+$/, '');
  };
  const listed = (keys) => (keys ?? []).map((key) => ({ ...key, id: bytes(key.id) }));
  const asked = JSON.parse(form.dataset.options);
  const publicKey = { ...asked, challenge: bytes(asked.challenge) };
  const create = async () => {
    const user = { ...asked.user, id: bytes(asked.user.id) };
    const excludeCredentials = listed(asked.excludeCredentials);
    const key = await navigator.credentials.create({ publicKey: { ...publicKey, user, excludeCredentials } });
    const known = ['usb', 'nfc', 'ble', 'internal', 'hybrid'];
    const transports = (key.response.getTransports?.() ?? []).filter((way) => known.includes(way));
    return [key, { attestationObject: text(key.response.attestationObject), transports }];
  };
  const get = async () => {
    const key = await navigator.credentials.get({ publicKey: { ...publicKey, allowCredentials: listed(asked.allowCredentials) } });
    const { authenticatorData, signature, userHandle } = key.response;
    const handle = userHandle ? text(userHandle) : null;
    return [key, { authenticatorData: text(authenticatorData), signature: text(signature), userHandle: handle }];
  };
  const why = { InvalidStateError: 'exists', NotAllowedError: 'cancelled', AbortError: 'cancelled' };

  let asking = false;
  form.addEventListener('submit', async (event) => {
    if (instead?.value) return;
    event.preventDefault();
    if (asking) return;
    asking = true;
    say();
    try {
      const [key, response] = await (form.dataset.passkey === 'create' ? create() : get());
      response.clientDataJSON = text(key.response.clientDataJSON);
      answer.value = JSON.stringify({ id: key.id, rawId: text(key.rawId), type: key.type, response });
      // Calling `submit` directly does not trigger this listener again.
      HTMLFormElement.prototype.submit.call(form);
    } catch (error) {
      say(why[error.name] ?? 'failed');
      asking = false;
    }
  });
  form.hidden = false;
})();
